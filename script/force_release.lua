-- Force-release: nobody has the lock here, and whoever had it cannot restore it.
--
-- KEYS  1 lock  2 revoked
-- ARGV  1 last moment (node's clock, us; 0 = none)  2 channel  3 how long the revocation lives at least (ms)
--       4... holders to revoke besides the one found here
--
-- released  there was a lock, now deleted; the reply tells whose and how long it had
-- absent    there was none
-- expired   it came after its last moment and did nothing: whoever holds the lock by then is not who was meant
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(ARGV[1])
if last > 0 and now > last then
  return {'expired', 0, -2, '', 0, now}
end

local status, holder, count, ttl = 'absent', '', 0, -2
local lives = tonumber(ARGV[3])
local revoked = redis.call('GET', KEYS[2]) or ''
local function revoke(who)
  if who ~= '' and not string.find(' ' .. revoked .. ' ', ' ' .. who .. ' ', 1, true) then
    -- A holder that was force-released earlier may not have noticed yet: it stays on the list.
    revoked = revoked == '' and who or revoked .. ' ' .. who
  end
end

if redis.call('EXISTS', KEYS[1]) == 1 then
  local held = redis.pcall('HGETALL', KEYS[1])
  status, ttl = 'released', redis.call('PTTL', KEYS[1])
  if not held.err then
    holder, count = held[1], tonumber(held[2]) or 0
    revoke(holder)
  elseif not string.find(held.err, 'WRONGTYPE', 1, true) then
    -- Not a key of another type, but no permission, say: whoever is in there could not be revoked.
    held.err = held.err .. ': HGETALL'
    return held
  end
  lives = math.max(lives, ttl)
end
for i = 4, #ARGV do
  revoke(ARGV[i])
end
-- Enough for those who may not have noticed; more would be a list that grows for ever.
while #revoked > 2000 do
  revoked = string.match(revoked, ' (.*)') or ''
end
if revoked ~= '' then
  lives = math.max(lives, redis.call('PTTL', KEYS[2]))
  redis.call('SET', KEYS[2], revoked, 'PX', string.format('%.0f', lives))
end
if status == 'released' then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[2], '0')
end
return {status, 0, ttl, holder, count, now}
