#include <kvkeep/c.h>
#include <stdio.h>

int main(void) {
  kvkeep_options options = {0};
  kvkeep_cache* cache;
  options.struct_size = sizeof options;
  options.hot_only = 1;
  options.hot_max_bytes = 1 << 20;
  if (kvkeep_open(&options, &cache) != KVKEEP_OK) return 1;
  kvkeep_cache_free(cache);
  printf("kvkeep %s\n", kvkeep_version());
  return 0;
}
