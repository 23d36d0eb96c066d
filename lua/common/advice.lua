-- Needs attempt
local longest_look = 5000 -- all waiters look at least so often by themselves: MaxNap in fair.go

-- advise tells all waiters in how many milliseconds to look again, because a lease that they do not
-- know of began by a hand-over. They look before a longer one ends. Redisson's ignore the message.
local function advise(verb, channel, lease)
  if tonumber(lease) < longest_look then attempt(verb, channel, lease) end
end
