"""moto's S3 server, one request at a time.

Its own command answers on several threads and checks a condition (If-Match, If-None-Match) in one
step and stores the object in another, without a lock in between, so that two conditional writes
now and then both succeed, as they never do on S3.
"""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

app = DomainDispatcherApplication(create_backend_app)
one_at_a_time = threading.Lock()


def serve(environ, start_response):
    with one_at_a_time:
        return [b"".join(app(environ, start_response))]


run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True)
