// Must be found to crash, within seconds: otherwise the other targets' silence means nothing.
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.substr(0, 3) == "bug") std::abort();
  return 0;
}
