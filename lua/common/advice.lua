-- Advice: a number on the channel of a lock, the milliseconds after which those who wait are to look again. Redisson's waiters
-- ignore it.

-- All who wait look at least that often by themselves: MaxNap in fair.go.
local longest_look = 5000

-- advise: tells all who wait of a lease that began by a hand-over: they know only of the one before. A longer lease concerns
-- nobody, as they look before it ends.
local function advise(verb, channel, lease)
  if tonumber(lease) < longest_look then
    redis.pcall(verb, channel, lease)
  end
end
