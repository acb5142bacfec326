package peer;

import java.util.HashMap;
import java.util.Map;

/** The same command line as every peer's: {@code --name value} pairs. */
final class Arguments {
    private final Map<String, String> given = new HashMap<>();

    Arguments(String[] words) {
        for (int at = 0; at + 1 < words.length; at += 2) {
            given.put(words[at], words[at + 1]);
        }
    }

    String text(String name) {
        String value = given.get(name);
        if (value == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return value;
    }

    long number(String name) {
        return Long.parseLong(text(name));
    }
}
