"""The demo: a small fleet of scripted agents on the real SDK, broker and worker.

`scripts` says what each agent does, `agents` plays them, `board` keeps what is seen of them,
`view` shows it, and `stage` puts it together. ``loopstream up --demo`` runs it.
"""
