-- Begins a run of a once key, unless the key has a result.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  record: "token run", or "token run print result" if the key has a result
-- ARGV[1]  owner
-- ARGV[2]  run, a text that no other run has
-- ARGV[3]  lifetime of the record in milliseconds
-- Returns  the record of the run or of the result; 0 = the owner does not hold the lock
-- Retry    safe: a run that has begun keeps its token

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  -- Needs not_held
  return not_held(KEYS[1]) or 0
end
local record = redis.call('GET', KEYS[2])
local token, run, more = string.match(record or '', '^(%d+) ([^ ]+)( ?)')
-- The caller reports a value that is not a record.
if record and (not token or more == ' ' or run == ARGV[2]) then return record end
-- The clock makes the token larger than the tokens of records that have expired. The last token
-- counts as well, because the clock may have been set back.
local time = redis.call('TIME')
local next_token = math.max(tonumber(time[1]) * 1000000 + tonumber(time[2]),
  tonumber(token or 0) + 1)
record = string.format('%.0f', next_token) .. ' ' .. ARGV[2]
redis.call('SET', KEYS[2], record, 'PX', ARGV[3])
return record
