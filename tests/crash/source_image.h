// The source files of simulated imports. A seed stands for a state of one of a few sources, and
// decides everything that an import reads from it: type, attributes, extended attributes, content.
//
// There are few sources and few states, so that imports often find an entry as they would leave
// it. States of a source differ in content, in attributes, or in both. Some have the same size and
// mtime, so that only the content or the ctime tells them apart.
//
// Thread-safety: as for plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/entry_store.h"
#include "store/base/random.h"

namespace siltfs::testing {

inline constexpr uint64_t kSources = 7;
inline constexpr uint64_t kSourceStates = 4;

// Returns a seed for this state of the source. `random` decides the details that are not part of
// the state, for example whether the import keeps its facts.
uint64_t SourceSeed(uint64_t source, uint64_t state, Random& random);

// Returns a number that is independent of the source and its state.
uint64_t DetailsOf(uint64_t seed);

class SourceImage {
 public:
  enum class Type : uint8_t {
    kAny,  // any type but a directory
    kFile,
    kDirectory,
  };
  explicit SourceImage(uint64_t seed, Type type = Type::kAny);
  SourceImage(SourceImage&&) = default;
  SourceImage(const SourceImage&) = delete;  // its members point into each other

  // The image of the entry of this name. It borrows from this object.
  EntryImage At(InodeNumber parent, std::string_view name) const;

 private:
  void MakeFile(uint64_t source, uint64_t state);
  void AddXattrs(uint64_t source, uint64_t state);

  EntryImage image_;  // without the parts that have their own members
  std::string target_;
  Bytes content_;
  std::vector<ExtentImage> extents_;  // parts of `content_`
  std::vector<std::pair<std::string, std::string>> xattr_texts_;
  std::vector<XattrImage> xattrs_;  // of xattr_texts_
};

// Returns the facts of all states of all sources that have this mtime and this size in bytes.
std::vector<SourceFacts> FactsWith(int64_t mtime, uint64_t size);

}  // namespace siltfs::testing
