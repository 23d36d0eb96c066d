-- Frees a fair lock whoever holds it, and tells the head of its queue.
--
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  queue: list of owners, head first
-- KEYS[3]  scores of the queue
-- KEYS[4]  turn of the head
-- KEYS[5]  budgets: sorted set of owner -> when it stops waiting
-- ARGV[1]  channel prefix of the waiters
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  milliseconds that a head has to take its turn
-- ARGV[4]  the same for one that nobody listens for
-- ARGV[5]  milliseconds after which an owner that waits asks again at the latest
--
-- Returns  {status, refusal}: status -1 = it was free, 1 = released; refusal as in release.lua
-- Retry    safe, but a second run may free the lock of whoever took it in between

-- Uses announce, clock, queue, turn
local status = -1
-- HLEN instead of EXISTS: a key of another type is not a lock, and must not be deleted.
if redis.call('HLEN', lock) > 0 then
  redis.call('DEL', lock, turn)
  status = 1
end
local time = now()
sweep({}, time, -2)
local _, refusal = offer(time, nil)
return {status, refusal}
