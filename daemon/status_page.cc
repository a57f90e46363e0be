#include "daemon/pages.h"

namespace kvkeep::daemon {

std::string_view status_page() {
  return R"(<!doctype html>
<html lang="en"><meta charset="utf-8"><title>kvkeep</title><p>See <a href="stats">stats</a>.</html>
)";
}

}  // namespace kvkeep::daemon
