-- A cluster has sharded and classic channels, and a message on one kind does not reach the other.
-- With the verb BOTH a script publishes on a sharded channel. It also publishes on the classic
-- channel of the same name if another client listens there, because Redisson before 3.28 may use
-- only classic channels. Clients of holdfast listen on the classic channel too, because such a
-- Redisson publishes there. They also listen on a second classic channel, whose name begins with
-- holdfast_classic, so that scripts can subtract them.
-- Needs attempt

-- classic_listeners returns how many other clients listen on the classic channel through this node,
-- or nil if the server rejects the count.
local function classic_listeners(channel)
  local counts = attempt('PUBSUB', 'NUMSUB', channel, 'holdfast_classic:' .. channel)
  return counts and tonumber(counts[2]) - tonumber(counts[4])
end
