-- Needs attempt
local longest_sleep = 5000 -- after it every waiter asks by itself: LongestSleep in fair.go
-- advise notifies all waiters in how many milliseconds to ask again, because a hand-over began a
-- lease that they do not know. A longer lease needs no message, because waiters ask before it ends.
-- Clients of Redisson ignore the message.
local function advise(verb, channel, lease)
  if tonumber(lease) < longest_sleep then attempt(verb, channel, lease) end
end
