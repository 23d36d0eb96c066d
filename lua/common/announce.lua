-- Announcements: how a release is made known to those who wait.

-- announce: publishes, and returns how many heard it, and the server's refusal, '' if it did not refuse. An ACL without
-- the channel must not undo or hide a release.
local function announce(verb, channel, message)
  local published = redis.pcall(verb, channel, message)
  if type(published) == 'table' and published.err then
    return 0, published.err
  end
  return published, ''
end
