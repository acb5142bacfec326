import msgpack
from hypothesis import given
from hypothesis import strategies as st

from loopstream.events import RunStarted, ToolCall
from loopstream.sdk.frames import join_frame
from loopstream.sdk.stream import Stream
from loopstream.wire.codec import decode_record, encode_frame, pack_frame
from loopstream.wire.routing import partition_of


@given(st.lists(st.dictionaries(st.text(), st.integers(0, 9)), max_size=20))
def test_joined_events_are_the_frame_of_the_codec(events: list[dict[str, int]]) -> None:
    assert join_frame([msgpack.packb(event) for event in events]) == pack_frame(events)


def test_a_stream_writes_what_the_models_write() -> None:
    stream = Stream("r", 7, {"run": "r", "agent": "a", "session": None, "runner": "x"})
    assert stream.next_id() == "7-1"
    packed = stream.pack("run_started", 5, {"resumed": True})
    expected = RunStarted(
        v=1,
        type="run_started",
        id="7-1",
        run="r",
        agent="a",
        runner="x",
        epoch=7,
        seq=1,
        time=5,
        resumed=True,
    )
    assert decode_record(join_frame([packed])).events == [expected]
    assert set(msgpack.unpackb(packed)) == set(
        msgpack.unpackb(encode_frame([expected]))["events"][0]
    )


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.text(max_size=3) | st.none()),
    st.dictionaries(st.sampled_from("ijklmnopqrst"), st.integers(0, 9)),
)
def test_an_event_is_packed_as_one_map(
    envelope: dict[str, str | None], own: dict[str, int]
) -> None:
    stream = Stream("r", 7, envelope)
    stream.next_id()
    shared = {name: value for name, value in envelope.items() if value is not None}
    head = {"v": 1, **shared, "epoch": 7, "type": "compaction", "id": "7-1", "seq": 1, "time": 5}
    assert stream.pack("compaction", 5, own) == msgpack.packb({**head, **own})


def test_numbers_rise_and_name_the_events() -> None:
    stream = Stream("r", 7, {"run": "r"})
    ids = [stream.next_id() for _ in range(3)]
    assert ids == ["7-1", "7-2", "7-3"]
    assert stream.id_of(2) == ids[1]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(1, 2000))
def test_a_stream_goes_where_kafka_would_put_it(scope: str, partitions: int) -> None:
    assert Stream(scope, 1, {}).partition(partitions) == partition_of(scope, partitions)


def test_surplus_fields_of_a_call_survive_the_models() -> None:
    stream = Stream("r", 1, {"run": "r"})
    stream.next_id()
    packed = stream.pack("tool_call", 1, {"tool": "exec", "args": "{}", "preview": "{}"})
    (event,) = decode_record(join_frame([packed])).events
    assert isinstance(event, ToolCall)
    assert (event.args, event.preview, event.disposition) == ("{}", "{}", "executed")
