-- Takes a fair lock for one owner if it is its turn. If not, an owner that waits is queued, and told when to look again.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue: list of owners, head first
-- KEYS[3]  scores of the queue
-- KEYS[4]  turn of the head
-- KEYS[5]  budgets: sorted set of owner -> when it stops waiting
-- ARGV[1]  channel prefix of the waiters
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  milliseconds that a head has to take its turn
-- ARGV[4]  the same for one that nobody listens for
-- ARGV[5]  milliseconds after which an owner that waits asks again at the latest
-- ARGV[6]  owner
-- ARGV[7]  hold count to leave behind (absolute)
-- ARGV[8]  lease in milliseconds
-- ARGV[9]  1 = the owner waits, and is queued; 0 = it takes the lock if that is free and nobody is queued
-- ARGV[10] window of the owner in milliseconds
-- ARGV[11] budget: for how many milliseconds the owner goes on waiting when it sends this; 0 = without a limit
-- ARGV[12] when that ends, in milliseconds of the clock of the server; 0 = not known: then it counts from now
--
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, holder, nap, clock of the server}. A PTTL of -1
--          means "held, no expiry", and -2 that it is free and the holder's turn; nap is when to look again, -1 when the
--          lease should be over. An owner whose budget is over is refused in any case
-- Retry    safe: the count is absolute, an owner that holds the lock keeps it, one that is queued keeps its place

-- Uses refused, grant, announce, clock, queue, turn
local owner, lease, window = ARGV[6], tonumber(ARGV[8]), tonumber(ARGV[10])
if redis.call('HEXISTS', lock, owner) == 1 then
  return grant(lock, redis.call('PTTL', lock), lease, owner, ARGV[7])
end

local time, left = now(), redis.call('PTTL', lock)
if left ~= -2 then
  -- Somebody came: the next head has a turn of its own. A server that is out of memory refuses no write after this one, so
  -- one can wait there, as for any other lock.
  redis.call('DEL', turn)
end
local budget, ends = tonumber(ARGV[11]), tonumber(ARGV[12])
if budget > 0 and (ends == 0 or ends > time + budget) then
  ends = time + budget -- not known, or by the clock of another server, which this one has replaced
end
-- A question that was held up on its way, for longer than its caller waits, must leave nothing behind.
local late = ends > 0 and ends <= time
local asking = not late and owner or nil

-- A score must outlast the time to the next question by far. That of an owner which is about to stop waiting does so anyway.
local spare = 2 * longest_nap
if ends == 0 or ends - time > 1000 then
  keep(owner, window, time, left, spare)
end
if ends > 0 and not late and redis.call('ZSCORE', budgets, owner) then
  redis.pcall('ZADD', budgets, whole(ends), owner) -- the clock may have been set since, or its owner knew it less well
end
local another = sweep({}, time, left)
local score = redis.call('ZSCORE', scores, owner)

local nap = -1
if left == -2 then
  nap = offer(time, asking)
  if nap == 0 and asking then
    local refusal = grant(lock, left, lease, owner, ARGV[7])
    if not refusal then
      if redis.call('LINDEX', queue, 0) then
        pop(time + lease)
      end
      nudge(lease)
    end
    return refusal
  end
end

if ARGV[9] == '1' and not score and not late then
  local tail = redis.call('LINDEX', queue, -1)
  local base = tail and redis.call('ZSCORE', scores, tail) or time + math.max(left, 0)
  redis.call('ZADD', scores, whole(base + window), owner)
  redis.call('RPUSH', queue, owner)
  if ends > 0 then
    redis.call('ZADD', budgets, whole(ends), owner)
    -- Longer than any of them, as the next one who comes is to find them over.
    local lasts = ends - time + 2 * spare
    if redis.call('PTTL', budgets) < lasts then
      redis.call('PEXPIRE', budgets, whole(lasts))
    end
  end
end

local head = redis.call('LINDEX', queue, 0)
if left ~= -2 and head and head ~= owner then
  nap = longest_nap -- the end of the lease is the head's business
  if another then
    nudge(left)
  end
end
if late then
  nap = 10 -- if its caller is waiting after all, it knows what time it is now
end
local refusal = left == -2 and {head and -2 or 0, head or '', nap} or refused(lock, nap)
refusal[4] = whole(time)
return refusal
