// The flags that several verbs have.
#pragma once

#include "cli/verb.h"

namespace kvkeep::cli {

inline constexpr Flag kDirFlag{"dir", "DIR", "the store; instead of the word DIR", "KVKEEP_DIR"};
inline constexpr Flag kJsonFlag{"json", "", "print one JSON object", "KVKEEP_JSON"};
inline constexpr Flag kJsonLinesFlag{"json", "", "print one JSON object per line", "KVKEEP_JSON"};
inline constexpr Flag kDryRunFlag{"dry-run", "", "only say what would go", "KVKEEP_DRY_RUN"};
inline constexpr Flag kModelFlag{"model", "MODEL", "only blocks of this model", "KVKEEP_MODEL"};

}  // namespace kvkeep::cli
