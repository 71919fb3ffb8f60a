-- Inspect: who holds the lock here, how often, for how long, and the highest token granted. Changes nothing.
--
-- KEYS  1 lock  2 fence
-- ARGV  1 last moment (unused)
--
-- held    by the holder in the reply, or by a key of another type
-- absent  nobody's
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local fence = tonumber(redis.call('GET', KEYS[2]) or 0)
local held = redis.pcall('HGETALL', KEYS[1])
if held.err then
  -- A key of another type is somebody else's. Any other error (no permission, say) is one, and no answer.
  if not string.find(held.err, 'WRONGTYPE', 1, true) then
    held.err = held.err .. ': HGETALL'
    return held
  end
  return {'held', fence, redis.call('PTTL', KEYS[1]), '', 0, now}
end
if not held[1] then
  return {'absent', fence, -2, '', 0, now}
end
return {'held', fence, redis.call('PTTL', KEYS[1]), held[1], tonumber(held[2]) or 0, now}
