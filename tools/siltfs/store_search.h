// Finds a store by its UUID or its label, in a list of places.
//
// Thread-safety: from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// The file with the places, and the places if it does not exist.
inline constexpr const char* kStoresFile = "/etc/siltfs/stores";
std::vector<std::string> DefaultStorePlaces();

struct StoreTag {
  enum class Kind : uint8_t { kUuid, kLabel };
  Kind kind = Kind::kUuid;
  std::string value;

  std::string ToText() const;  // "UUID=..." or "LABEL=..."
};

// Returns the tag that a source of a mount is: "UUID=U", "LABEL=L", "siltfs-uuid:U" or
// "siltfs-label:L". mount(8) resolves the first two forms itself, among the disks, so fstab has the
// other two. Empty for any other text, which is a path. To name a directory "UUID=U", write
// "./UUID=U".
std::optional<StoreTag> ParseStoreTag(std::string_view source);

// Returns the places in a file of this form: a line for each place, an absolute path; empty lines
// and those that begin with "#" are left out. Returns the default places if the file does not
// exist. kInvalidArgument for a line that is no absolute path.
Result<std::vector<std::string>> ReadStorePlaces(Env& env, const std::string& file);

// Returns the directory of the store with this tag. A place is a store, or a directory whose
// entries are examined. Only stores that belong to the superuser or to the user of this process
// count, because any user can give a store any label. Places that do not exist or cannot be read,
// and stores that cannot be opened, are left out.
//
// kNotFound if there is no such store, kInvalidArgument if the tag is malformed, and kUnsupported
// if it names several stores. The message names the candidates.
Result<std::string> FindTaggedStore(Env& env, const StoreTag& tag,
                                    const std::vector<std::string>& places);

}  // namespace siltfs
