-- Needs attempt
local longest_sleep = 5000 -- every waiter asks at least this often by itself: LongestSleep in fair.go
-- advise tells all waiters in how many milliseconds to ask again, because a hand-over began a lease
-- that they do not know of. They ask before a longer one ends. Redisson's ignore the message.
local function advise(verb, channel, lease)
  if tonumber(lease) < longest_sleep then attempt(verb, channel, lease) end
end
