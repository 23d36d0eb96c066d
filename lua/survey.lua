-- Reads the keys of a lock of any kind, in bounded time. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count, and `mode` for a read-write lock
-- KEYS[2]  and all that follow: keys beside it
-- ARGV[1]  how many holders, and how many waiters of each sort, to return at most
-- ARGV[2]  and all that follow: what KEYS[2] and all that follow are, by the name in survey.go
-- Returns  {clock, PTTL, mode, number of fields, {field, value, ...}, number of registrations,
--          {registration, ticket, ...}, length of the queue, {owner, ...}, {score, budget, ...},
--          fence, writer, its PTTL, reader}. clock is in milliseconds, -1 = rejected; '' stands for
--          something missing. A key of another type counts as missing
-- Retry    safe

-- Needs attempt, bounds, clock, fields
local most, beside = tonumber(ARGV[1]), {}
for i = 2, #ARGV do beside[ARGV[i]] = KEYS[i] end

-- read runs a command on a key, if there is a key. If there is nothing, or the key has another
-- type, read returns otherwise. If the ACL forbids the command, read ends the script.
local function read(otherwise, command, key, ...)
  if not key then return otherwise end
  local reply, refusal = attempt(command, key, ...)
  if refusal and not string.find(refusal.err, 'WRONGTYPE', 1, true) then
    return redis.call(command, key, ...) -- fails again, and ends the script
  end
  if type(reply) == 'string' then return string.sub(reply, 1, max_text) end
  return type(reply) == 'table' and shorten(reply) or reply or otherwise
end

local known, time = pcall(now)
local fields = read(0, 'HLEN', KEYS[1])
local holds = read({}, 'HRANDFIELD', KEYS[1], most, 'WITHVALUES')
local owners, scores = read({}, 'LRANGE', beside.queue, 0, most - 1), {}
for _, owner in ipairs(owners) do
  scores[#scores + 1] = read('', 'ZSCORE', beside.scores, owner)
  scores[#scores + 1] = read('', 'ZSCORE', beside.budgets, owner)
end
return {known and time or -1, redis.call('PTTL', KEYS[1]), read('', 'HGET', KEYS[1], 'mode'),
  fields, holds, read(0, 'ZCARD', beside.waiters),
  read({}, 'ZRANGE', beside.waiters, 0, most - 1, 'WITHSCORES'), read(0, 'LLEN', beside.queue),
  owners, scores, read('', 'GET', beside.token), read('', 'GET', beside.writer),
  read(-2, 'PTTL', beside.writer), read(0, 'EXISTS', beside.reader)}
