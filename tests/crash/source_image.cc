#include "tests/crash/source_image.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "fs/interface/posix_acl.h"
#include "tests/crash/operation_data.h"
#include "tests/support/acl_text.h"

namespace siltfs::testing {
namespace {

// Of the regular files. The last two sources are a symbolic link and a special file.
constexpr std::array<uint64_t, 5> kSizes = {0, 300, 9000, 20'000, 40'000};
constexpr uint64_t kLinkSource = kSizes.size();

// States 1 and 3 have a content of their own.
bool HasOtherContent(uint64_t state) { return state % 2 == 1; }

// Only state 1 has another mtime. The times are far below those of the device's clock, so no file
// that was written has one of them.
int64_t MtimeOf(uint64_t source, uint64_t state) {
  return static_cast<int64_t>(1 + 2 * source + (state == 1 ? 1 : 0));
}

SourceFacts FactsOf(uint64_t source, uint64_t state) {
  return {.inode = 100 + source,
          .ctime = static_cast<int64_t>(10 + state),
          .size = kSizes.at(source),
          .mtime = MtimeOf(source, state)};
}

Bytes ContentOf(uint64_t source, uint64_t state) {
  Bytes content(kSizes.at(source));
  Random(source / 2).Fill(content);  // two sources share chunks
  if (HasOtherContent(state)) {
    const size_t begin = content.size() / 2;
    const size_t size = std::min(content.size() - begin, 1 + content.size() / 8);
    Random(10 + source).Fill(MutableByteView(content).subspan(begin, size));
  }
  if (source == 3) std::fill(content.begin() + 2'000, content.begin() + 6'000, uint8_t{0});
  return content;
}

}  // namespace

uint64_t SourceSeed(uint64_t source, uint64_t state, Random& random) {
  return random.Below(uint64_t{1} << 32) * kSources * kSourceStates + state * kSources + source;
}

uint64_t DetailsOf(uint64_t seed) { return seed / kSources / kSourceStates; }

SourceImage::SourceImage(uint64_t seed, Type type) {
  const uint64_t source = seed % kSources;
  const uint64_t state = seed / kSources % kSourceStates;
  const uint64_t details = DetailsOf(seed);
  const bool other_attributes = state == 1 || state == 2;
  image_.mode = other_attributes ? 0750 : 0644;
  image_.uid = static_cast<uint32_t>(other_attributes ? 3 : 1);
  image_.gid = static_cast<uint32_t>(1 + source % 2);
  image_.atime = static_cast<int64_t>(details % 100);
  image_.mtime = MtimeOf(source, state);
  // Sometimes a file gives way to a symbolic link.
  const bool link = type == Type::kAny && (source == kLinkSource || details % 16 == 1);
  if (type == Type::kDirectory) {
    image_.mode = S_IFDIR | (state == 2 ? 02770 : image_.mode | 0111);
  } else if (link) {
    image_.mode = S_IFLNK | 0777;
    target_ = fmt::format("target-{}", state);
  } else if (type == Type::kAny && source > kLinkSource) {
    image_.mode = (NodeMode(state) & S_IFMT) | image_.mode;
    image_.device = NodeDevice(state);
  } else {
    image_.mode |= S_IFREG;
    if (source < kSizes.size()) MakeFile(source, state);
    if (source < kSizes.size() && details % 8 != 0) image_.source = FactsOf(source, state);
  }
  if (!link) AddXattrs(source, state);
}

void SourceImage::MakeFile(uint64_t source, uint64_t state) {
  content_ = ContentOf(source, state);
  image_.size = content_.size();
  const auto add = [this](size_t begin, size_t end) {
    extents_.push_back({begin, ByteView(content_).subspan(begin, end - begin)});
  };
  if (source == kSizes.size() - 1) {  // with holes in the middle and at the end
    add(0, 10'000);
    add(16'384, 36'864);
  } else if (!content_.empty()) {
    add(0, content_.size());
  }
}

void SourceImage::AddXattrs(uint64_t source, uint64_t state) {
  if (state == 0 || state == 3) {
    xattr_texts_.emplace_back("user.a", fmt::format("of {}", source));
  } else if (state == 1) {
    xattr_texts_.emplace_back("user.b", std::string(100, 'b'));
    xattr_texts_.emplace_back("security.capability", "some");
  }
  if (state == 2) {
    // As stat(2) would, the mode's group bits show the mask.
    const bool directory = S_ISDIR(image_.mode);
    const std::string list = AclFromText("u::rwx,u:7:r--,g::r-x,m::rwx,o::---");
    xattr_texts_.emplace_back(kAccessAclName, list);
    if (directory) xattr_texts_.emplace_back(kDefaultAclName, list);
    image_.mode = (image_.mode & ~0777U) | 0770;
  }
  for (const auto& [name, value] : xattr_texts_) xattrs_.push_back({name, value});
}

EntryImage SourceImage::At(InodeNumber parent, std::string_view name) const {
  EntryImage image = image_;
  image.parent = parent;
  image.name = name;
  image.target = target_;
  image.xattrs = xattrs_;
  image.extents = extents_;
  return image;
}

std::vector<SourceFacts> FactsWith(int64_t mtime, uint64_t size) {
  std::vector<SourceFacts> found;
  for (uint64_t source = 0; source < kSizes.size(); ++source) {
    for (uint64_t state = 0; state < kSourceStates; ++state) {
      const SourceFacts facts = FactsOf(source, state);
      if (facts.mtime == mtime && facts.size == size) found.push_back(facts);
    }
  }
  return found;
}

}  // namespace siltfs::testing
