// The files of a directory as a fuzzer's input. Each file is the length of its name, its name, its
// size in three bytes, and its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/coding.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {

// Makes the directory, with the files of the input.
inline void PutFiles(SimEnv& env, const std::string& directory, FuzzInput& input) {
  MustHold(env.CreateDirectory(directory).ok(), "there is a place for the files");
  while (!input.empty()) {
    const std::string name(AsText(input.Take(input.Number(1))));
    const ByteView bytes = input.Take(input.Number(3));
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      continue;
    auto file = env.OpenFile(JoinPath(directory, name), {.mode = OpenMode::kCreate});
    if (file.ok()) {
      (*file)->Write(0, bytes).IgnoreError("the device is full");
    } else {
      file.status().IgnoreError("the name is taken");
    }
  }
}

// The input for which PutFiles makes the files of the directory again.
inline std::string FilesAsInput(SimEnv& env, const std::string& directory) {
  constexpr uint64_t kMostBytes = 16U << 20;
  Encoder out;
  const std::vector<DirectoryEntry> files = Must(env.ListDirectory(directory));
  for (const DirectoryEntry& entry : files) {
    const std::string file = Must(ReadWholeFile(env, JoinPath(directory, entry.name), kMostBytes));
    out.U8(static_cast<uint8_t>(entry.name.size())).Raw(entry.name);
    out.U24(static_cast<uint32_t>(file.size())).Raw(file);
  }
  return out.Take();
}

}  // namespace siltfs::testing
