// Everything that a user of kvkeep needs.
#pragma once

#include "kvkeep/block.h"
#include "kvkeep/block_cache.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/chain_keys.h"
#include "kvkeep/directory.h"
#include "kvkeep/environment.h"
#include "kvkeep/event.h"
#include "kvkeep/hot_budget.h"
#include "kvkeep/options.h"
#include "kvkeep/reason.h"
#include "kvkeep/size_string.h"
#include "kvkeep/source.h"
#include "kvkeep/stats.h"
#include "kvkeep/status.h"
#include "kvkeep/tensor.h"
#include "kvkeep/version.h"
