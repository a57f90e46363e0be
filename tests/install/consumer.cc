#include <kvkeep/kvkeep.h>

#include <cstdio>

int main() {
  const auto size = kvkeep::parse_size("1.5GB");
  if (!size.ok()) return 1;
  std::printf("kvkeep %s, %s\n", KVKEEP_VERSION, kvkeep::format_bytes(*size).c_str());
}
