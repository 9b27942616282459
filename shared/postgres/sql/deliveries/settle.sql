-- Writes what came of a request and gives the lease back, fenced by its token.
-- Locks: the endpoint, the delivery, the key.
select held::text, attempts::text, disabled, notice::text
from weirkeeper.settle_delivery(
  %(id)s, %(token)s, %(result)s, %(code)s, %(delay)s, %(pause)s, %(disable)s, %(status)s,
  %(phases)s, %(headers)s, %(body)s, %(truncated)s, %(peer)s, %(url)s,
  to_timestamp(%(started_at)s))
