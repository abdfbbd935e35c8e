-- What functions of removeJob become (see remove.rs).

-- For removeParentDependencyKey: a parent that waits for a job which is removed has nothing to wait for any more.
-- It fails, as soon as somebody takes it, instead of running.
local function failingParent(f)
  return function(jobKey, hard, parentKey, ...)
    local parent = parentKey or redis.call('HGET', jobKey, 'parentKey')
    local queue, id = (parent or ''):match('^(.+:)([^:]+)$')
    -- One that has failed already may wait for its children again.
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

-- For removeJobFromAnyState: where the job is known to stand, it has been taken out already.
local state_of = {}
local function knownState(f)
  return function(prefix, id)
    return state_of[prefix .. id] or f(prefix, id)
  end
end
