"""The web console: a JSON API and static assets, served by the gateway at ``/console``.

app.py                 routes, headers; what the server mounts
login.py               who may open the console
static_files.py        the assets and the content security policy
sessions.py, live.py   the API of the views, one module each; docs/console.md says how to add one
turns.py               one recorded turn as the session view shows it
export.py              one session as one HTML file
"""
