// The fixed parameters of a key-value store: written once, before any other file. Format:
// docs/format.md, "Key-value store".
//
// Functions only, safe to call from any thread.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "index/flash/slot.h"
#include "store/env/env.h"

namespace siltfs {

struct KeyValueManifest {
  SlotLayout layout;
  std::array<uint8_t, 32> secret{};  // the name of a key is a hash of secret and key

  friend bool operator==(const KeyValueManifest&, const KeyValueManifest&) = default;
};

// Reads the manifest; empty if there is none. Errors: kCorruption, kNeedsNewer.
Result<std::optional<KeyValueManifest>> ReadKeyValueManifest(Env& env,
                                                             const std::string& directory);
// Writes the manifest; it is durable on return.
Status WriteKeyValueManifest(Env& env, const std::string& directory,
                             const KeyValueManifest& manifest);

}  // namespace siltfs
