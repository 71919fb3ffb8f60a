-- Force-release: some holders do not have the lock on this node any more. The second step: enough nodes have stored the
-- revocation of these holders before (revoke.lua).
--
-- KEYS  1 lock
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 channel  3... holders; '' stands for a key that is no lock
--
-- released  one of them had the lock, which is deleted
-- absent    there was no lock
-- held      by somebody who took it since
-- expired   it came after its last moment and did nothing
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then
  return {'absent', 0, -2, '', 0, now}
end
-- As in acquire.lua: what is no lock has no holder.
local held = {''}
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' and not string.find(fields.err, 'WRONGTYPE', 1, true) then
  fields.err = fields.err .. ': HLEN'
  return fields
elseif type(fields) ~= 'table' and fields <= 64 then
  held = redis.call('HGETALL', KEYS[1])
end
local holder, count = held[1], tonumber(held[2]) or 0
for i = 3, #ARGV do
  if ARGV[i] == holder then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', ARGV[2], '0') -- a hint to waiters, who poll besides
    return {'released', 0, ttl, holder, count, now}
  end
end
return {'held', 0, ttl, holder, count, now}
