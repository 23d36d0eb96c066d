-- unpack returns the elements of a table. Lua 5.4, which Dragonfly has, keeps it in another place.
local unpack = table.unpack or unpack
