"""The web app: an HTTP API for maps, scenes and plans, and a page that uses it.

`arcfleet serve` starts it. The parts: `app` answers requests, `models` says what may be
asked, `security` who may ask, `store` keeps what was made, `jobs` runs the worker
processes, and `worker` is what they do.
"""
