-- Records the process of a client, for those who look at its locks.
-- KEYS[1]  client: hash with `program`, `host`, `pid`, `start`, `label`
-- ARGV[1]  TTL in milliseconds
-- ARGV[2]  program
-- ARGV[3]  host
-- ARGV[4]  process id
-- ARGV[5]  start of the process, in milliseconds since 1970
-- ARGV[6]  label, which may be empty
-- Returns  1
-- Retry    safe: the script writes the same fields, and the TTL begins anew

redis.call('HSET', KEYS[1], 'program', ARGV[2], 'host', ARGV[3], 'pid', ARGV[4],
  'start', ARGV[5], 'label', ARGV[6])
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
