-- Takes a fair lock for one owner if it is its turn. If not, an owner that waits is queued, and told when to look again.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue: list of owners, head first
-- KEYS[3]  scores of the queue
-- KEYS[4]  turn of the head
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
-- ARGV[4]  1 = the owner waits, and is queued; 0 = it takes the lock if that is free and nobody is queued
-- ARGV[5]  window of the owner in milliseconds
-- ARGV[6]  channel prefix of the waiters
-- ARGV[7]  PUBLISH or SPUBLISH
-- ARGV[8]  milliseconds that a head has to take its turn
-- ARGV[9]  the same for one that nobody listens for
-- ARGV[10] milliseconds after which an owner that waits asks again at the latest
--
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, holder, nap}. A PTTL of -1 means "held, no expiry",
--          and -2 that it is free and the holder's turn; nap is when to look again, -1 when the lease should be over
-- Retry    safe: the count is absolute, an owner that holds the lock keeps it, one that is queued keeps its place

-- Uses refused, grant, announce, clock, queue
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return grant(KEYS[1], redis.call('PTTL', KEYS[1]), ARGV[3], ARGV[1], ARGV[2])
end

local time, window, longest_nap = now(), tonumber(ARGV[5]), tonumber(ARGV[10])
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then
  -- Somebody came: the next head has a turn of its own. A server that is out of memory refuses no write after this one, so
  -- one can wait there, as for any other lock.
  redis.call('DEL', KEYS[4])
end

-- Whoever asks is alive, however late it comes: its place is kept, and those behind keep their distance. Not least those
-- of Redisson, which do not ask again. A score must outlast the time to the next question by far.
local spare = 2 * longest_nap
local score = redis.call('ZSCORE', KEYS[3], ARGV[1])
if score and tonumber(score) < time + math.max(left, 0) + window + spare then
  local after, before = behind(KEYS[2], KEYS[3], ARGV[1])
  if after then
    local base = before and redis.call('ZSCORE', KEYS[3], before)
    base = math.max(tonumber(base or 0), time + math.max(left, 0) + spare)
    local late = base + window - tonumber(score)
    if late > 0 then
      after[#after + 1] = ARGV[1]
      shift(KEYS[3], after, late)
    end
  else
    redis.call('ZREM', KEYS[3], ARGV[1])
    score = false
  end
end
purge(KEYS[2], KEYS[3], time)

local nap = -1
if left == -2 then
  nap = offer(KEYS[2], KEYS[3], KEYS[4], time, ARGV[1], ARGV[7], ARGV[6], tonumber(ARGV[8]), tonumber(ARGV[9]))
  if nap == 0 then
    local refusal = grant(KEYS[1], left, ARGV[3], ARGV[1], ARGV[2])
    if not refusal and redis.call('LPOP', KEYS[2]) then
      redis.call('ZREM', KEYS[3], ARGV[1])
      redis.call('DEL', KEYS[4])
      shift(KEYS[3], redis.call('ZRANGE', KEYS[3], 0, -1), -window)
    end
    return refusal
  end
end

if ARGV[4] == '1' and not score then
  local tail = redis.call('LINDEX', KEYS[2], -1)
  local base = tail and redis.call('ZSCORE', KEYS[3], tail) or time + math.max(left, 0)
  redis.call('ZADD', KEYS[3], whole(base + window), ARGV[1])
  redis.call('RPUSH', KEYS[2], ARGV[1])
end

local head = redis.call('LINDEX', KEYS[2], 0)
if left == -2 then
  return {-2, head, nap}
end
if head and head ~= ARGV[1] then
  nap = longest_nap -- the end of the lease is the head's business
end
return refused(KEYS[1], nap)
