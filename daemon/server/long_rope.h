// LongRoPE: models (Phi 3 and 4, MiniCPM) with two sets of rotation factors. llama.cpp takes the
// long one where the context of a slot is longer than the one that the model was first trained
// with, so the state of equal tokens depends on the context's size (llama.cpp,
// llama_model::get_rope_factors).
//
// Threads:  pure but for the files.
// Blocking: reads the beginning of each file.
#pragma once

#include <filesystem>
#include <vector>

namespace kvkeep::daemon {

// Whether one of the model's GGUF files names a tensor of long factors. Names come before data;
// only the first 64 MiB of each file are searched. A file that cannot be read has none.
bool has_long_rope(const std::vector<std::filesystem::path>& parts);

}  // namespace kvkeep::daemon
