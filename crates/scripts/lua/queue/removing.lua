-- Wrappers of functions of removeJob.

-- Wraps removeParentDependencyKey. BullMQ lets a parent run when a child that it waits for is removed. Here the
-- parent is marked, and fails when a worker takes it, unless the child was allowed to fail.
local function failingParent(f)
  return function(jobKey, hard, parentKey, ...)
    local parent = parentKey or redis.call('HGET', jobKey, 'parentKey')
    local queue, id = (parent or ''):match('^(.+:)([^:]+)$')
    -- A parent that has failed may wait for its children again, when it is replayed.
    if queue and redis.call('SISMEMBER', parent .. ':dependencies', jobKey) == 1
      and (redis.call('ZSCORE', queue .. 'waiting-children', id) or redis.call('ZSCORE', queue .. 'failed', id)) then
      local ok, rules = pcall(cjson.decode, redis.call('HGET', jobKey, 'parent') or '{}')
      local mayFail = ok and type(rules) == 'table' and (rules.idof or rules.rdof or rules.cpof)
      if not mayFail then
        redis.call('HSETNX', parent, 'defa', 'child ' .. jobKey .. ' was removed')
      end
    end
    return f(jobKey, hard, parentKey, ...)
  end
end

-- Wraps removeJobFromAnyState: remove_slice.lua has taken the job out of its list already and knows its state.
local state_of = {}
local function knownState(f)
  return function(prefix, id)
    return state_of[prefix .. id] or f(prefix, id)
  end
end
