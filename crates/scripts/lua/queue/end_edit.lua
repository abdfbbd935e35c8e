-- Lets the next editor of a setting in, unless the turn of this one has ended by itself.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
