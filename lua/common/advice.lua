-- Advice: a number on the channel of a lock, the milliseconds after which those who wait are to look again at the latest. Those
-- of Redisson ignore it.

-- advise: tells all who wait of a lease that began though its owner did not ask just then: they know of the one before. A longer
-- one concerns nobody, as all look every five seconds.
local function advise(verb, channel, lease)
  if tonumber(lease) < 5000 then
    redis.pcall(verb, channel, lease)
  end
end
