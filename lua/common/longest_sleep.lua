-- longest_sleep is after how many milliseconds every waiter asks by itself: LongestSleep in fair.go.
-- A hand-over begins a lease that the other waiters do not know. If the lease is shorter, the script
-- publishes it, and waiters ask again after that time. With a longer lease, waiters ask before it
-- ends. Clients of Redisson ignore the message.
local longest_sleep = 5000
