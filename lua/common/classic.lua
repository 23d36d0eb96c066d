-- A cluster has sharded and classic channels, and a message on one kind does not reach the other.
-- With the verb BOTH a script publishes on a sharded channel and, if another client listens there,
-- on the classic channel of the same name: Redisson before 3.28 may know only that. Clients of this
-- library listen on the classic channel too, to hear such a Redisson. They also listen on another
-- one, whose name begins with holdfast_classic, so that they can be subtracted.
-- Needs attempt

-- classic_listeners returns how many other clients listen on the classic channel, as far as they
-- are connected to this node; or nil if the server refuses to count them.
local function classic_listeners(channel)
  local heard = attempt('PUBSUB', 'NUMSUB', channel, 'holdfast_classic:' .. channel)
  return heard and tonumber(heard[2]) - tonumber(heard[4])
end
