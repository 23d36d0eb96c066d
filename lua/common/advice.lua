-- Needs attempt
-- All waiters look at least so often by themselves: MaxNap in fair.go.
local longest_look = 5000

-- advise tells all waiters that a lease began by a hand-over: they know only of the one before. The
-- message is the milliseconds after which to look again; Redisson's waiters ignore it. A longer
-- lease needs no advice, because they look before it ends.
local function advise(verb, channel, lease)
  if tonumber(lease) < longest_look then attempt(verb, channel, lease) end
end
