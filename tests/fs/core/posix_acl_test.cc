// Access control lists without a file system. Tables give the expected results of some lists.
// Random lists are compared with simple models of the kernel's checks and of granted permissions.
#include "fs/interface/posix_acl.h"

#include <regex>

#include "store/base/random.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Tag = PosixAcl::Tag;
using Entry = PosixAcl::Entry;

PosixAcl Parse(std::string_view text) {
  auto acl = PosixAcl::Decode(AclFromText(text));
  REQUIRE_OK(acl);
  return *acl;
}

std::string Raw(const std::vector<Entry>& entries) {
  Encoder out;
  out.U32(2);
  for (const Entry& entry : entries) {
    out.U16(static_cast<uint16_t>(entry.tag));
    out.U16(static_cast<uint16_t>(entry.permissions)).U32(entry.id);
  }
  return out.Take();
}

// Whether the kernel (posix_acl_valid) accepts the list, checked by a pattern.
bool IsAcceptable(const std::vector<Entry>& entries) {
  std::string kinds;
  for (const Entry& entry : entries) {
    const bool named = entry.tag == Tag::kUser || entry.tag == Tag::kGroup;
    if (entry.permissions > 7 || (named && entry.id == 0xffffffff)) return false;
    switch (entry.tag) {
      case Tag::kUserObj:
        kinds += 'U';
        break;
      case Tag::kUser:
        kinds += 'u';
        break;
      case Tag::kGroupObj:
        kinds += 'G';
        break;
      case Tag::kGroup:
        kinds += 'g';
        break;
      case Tag::kMask:
        kinds += 'M';
        break;
      case Tag::kOther:
        kinds += 'O';
        break;
      default:
        kinds += '?';
    }
  }
  static const std::regex kPattern("UGO|Uu*Gg*MO");
  return std::regex_match(kinds, kPattern);
}

// Returns a list that is nearly always valid, but may be damaged in one place.
std::vector<Entry> RandomEntries(Random& random) {
  const auto permissions = [&] { return static_cast<uint32_t>(random.Below(8)); };
  std::vector<Entry> entries{{Tag::kUserObj, permissions()}};
  const auto name = [&](Tag tag) {
    for (uint64_t n = random.Below(4); n > 0; --n)
      entries.push_back({tag, permissions(), static_cast<uint32_t>(random.Below(5))});
  };
  const bool names = random.OneIn(2);
  if (names) name(Tag::kUser);
  entries.push_back({Tag::kGroupObj, permissions()});
  if (names) name(Tag::kGroup);
  if (names) entries.push_back({Tag::kMask, permissions()});
  entries.push_back({Tag::kOther, permissions()});
  return entries;
}

void Spoil(std::vector<Entry>& entries, Random& random) {
  static constexpr uint16_t kTags[] = {0, 1, 2, 4, 8, 16, 32, 64, 3};
  Entry& one = entries[random.Below(entries.size())];
  Entry& other = entries[random.Below(entries.size())];
  switch (random.Below(6)) {
    case 0:
      one.tag = static_cast<Tag>(kTags[random.Below(std::size(kTags))]);
      break;
    case 1:
      one.permissions = static_cast<uint32_t>(random.Below(10));
      break;
    case 2:
      one.id = PosixAcl::kNoId;
      break;
    case 3:
      std::swap(one, other);
      break;
    case 4:
      entries.push_back(Entry(one));
      break;
    default:
      entries.erase(entries.begin() + (&one - entries.data()));
  }
}

// Returns the permissions that each entry except the mask grants, with the mask applied.
std::vector<uint32_t> Effective(const PosixAcl& acl) {
  uint32_t mask = 7;
  for (const Entry& entry : acl.entries())
    if (entry.tag == Tag::kMask) mask = entry.permissions;
  std::vector<uint32_t> granted;
  for (const Entry& entry : acl.entries()) {
    if (entry.tag == Tag::kMask) continue;
    const bool masked = entry.tag != Tag::kUserObj && entry.tag != Tag::kOther;
    granted.push_back(masked ? entry.permissions & mask : entry.permissions);
  }
  return granted;
}

// The permission bits of a mode that limit this kind of entry.
uint32_t ClassBits(Tag tag, uint32_t mode) {
  if (tag == Tag::kUserObj) return mode >> 6 & 7;
  return tag == Tag::kOther ? mode & 7 : mode >> 3 & 7;
}

TEST_CASE("the form of an access control list is acl(5)'s, byte by byte") {
  const std::string bytes(
      "\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x06\0\xe9\x03\0\0\x04\0\x05\0\xff\xff\xff\xff"
      "\x10\0\x07\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff",
      44);
  auto acl = PosixAcl::Decode(bytes);
  REQUIRE_OK(acl);
  REQUIRE(acl->entries() == std::vector<Entry>{{Tag::kUserObj, 7},
                                               {Tag::kUser, 6, 1001},
                                               {Tag::kGroupObj, 5},
                                               {Tag::kMask, 7},
                                               {Tag::kOther, 4}});
  REQUIRE(acl->Encode() == bytes);
}

TEST_CASE("lists are valid as in the kernel") {
  for (const char* text : {
           "u::rwx,g::r-x,o::r--",
           "u::---,g::---,o::---",
           "u::rwx,g::r-x,m::rwx,o::r--",
           "u::rwx,u:1:r--,g::r-x,m::rwx,o::r--",
           "u::rwx,g::r-x,g:1:r--,m::rwx,o::r--",
           "u::rwx,u:9:r--,u:3:r--,g::r-x,g:2:r--,g:1:r--,m::rwx,o::r--",  // not sorted
           "u::rwx,u:1:r--,u:1:rwx,g::r-x,m::rwx,o::r--",                  // repeated
           "u::rwx,u:0:r--,u:4294967294:r--,g::r-x,m::rwx,o::r--",
       }) {
    INFO(text);
    REQUIRE_OK(PosixAcl::Decode(AclFromText(text)));
    REQUIRE(AclToText(Parse(text).Encode()) == text);
  }
  for (const char* text : {
           "", "u::rwx", "u::rwx,g::r-x", "u::rwx,o::r-x", "g::rwx,o::r-x",
           "u::rwx,u:1:r--,g::r-x,o::r--",                  // no mask
           "u::rwx,g::r-x,g:1:r--,o::r--",                  // no mask
           "u::rwx,u::rwx,g::r-x,o::r--",                   // twice
           "u::rwx,g::r-x,g::r-x,o::r--",                   //
           "u::rwx,g::r-x,m::rwx,m::rwx,o::r--",            //
           "u::rwx,g::r-x,o::r--,o::r--",                   //
           "g::r-x,u::rwx,o::r--",                          // out of order
           "u::rwx,g::r-x,o::r--,m::rwx",                   //
           "u::rwx,g::r-x,u:1:r--,m::rwx,o::r--",           //
           "u::rwx,g:1:r--,g::r-x,m::rwx,o::r--",           //
           "u:1:r--,u::rwx,g::r-x,m::rwx,o::r--",           //
           "u::rwx,u:4294967295:r--,g::r-x,m::rwx,o::r--",  // no id
       }) {
    INFO(text);
    REQUIRE_CODE(PosixAcl::Decode(AclFromText(text)), kInvalidArgument);
  }
}

TEST_CASE("values that are no access control lists are refused") {
  const std::string good = AclFromText("u::rwx,u:1:r--,g::r-x,m::rwx,o::r--");
  for (size_t size = 0; size < good.size(); ++size) {
    INFO(size);
    REQUIRE_CODE(PosixAcl::Decode(good.substr(0, size)), kInvalidArgument);
  }
  REQUIRE_CODE(PosixAcl::Decode(good + '\0'), kInvalidArgument);
  for (const char version : {0, 1, 3}) {
    std::string other = good;
    other[0] = version;
    REQUIRE_CODE(PosixAcl::Decode(other), kInvalidArgument);
  }
  std::string high_permission = good;
  high_permission[7] = 1;
  REQUIRE_CODE(PosixAcl::Decode(high_permission), kInvalidArgument);
}

TEST_CASE("a list is at most as long as the kernel reads at once") {
  const auto list_of = [](size_t named) {
    std::vector<Entry> entries{{Tag::kUserObj, 7}};
    for (size_t i = 0; i < named; ++i) entries.push_back({Tag::kUser, 4, static_cast<uint32_t>(i)});
    entries.insert(entries.end(), {{Tag::kGroupObj, 5}, {Tag::kMask, 7}, {Tag::kOther, 0}});
    return Raw(entries);
  };
  const size_t most = (PosixAcl::kMaxBytes - 4) / 8 - 4;
  REQUIRE_OK(PosixAcl::Decode(list_of(most)));
  REQUIRE_CODE(PosixAcl::Decode(list_of(most + 1)), kInvalidArgument);
}

TEST_CASE("entries without an id are written as acl(5) requires") {
  std::vector<Entry> entries = Parse("u::rwx,g::r-x,m::r--,o::---").entries();
  for (Entry& entry : entries) entry.id = 17;
  auto acl = PosixAcl::Decode(Raw(entries));
  REQUIRE_OK(acl);
  REQUIRE(AclToText(acl->Encode()) == "u::rwx,g::r-x,m::r--,o::---");
}

TEST_CASE("permission bits are read from a list, and written into it") {
  struct Case {
    const char* list;
    uint32_t bits;
    bool equivalent;
    const char* after_chmod_640;
  };
  for (const Case& c : {
           Case{"u::rwx,g::r-x,o::r--", 0754, true, "u::rw-,g::r--,o::---"},
           Case{"u::rwx,g::r-x,m::-w-,o::r--", 0724, false, "u::rw-,g::r-x,m::r--,o::---"},
           Case{"u::--x,u:1:rwx,g::r-x,m::rwx,o::-wx", 0173, false,
                "u::rw-,u:1:rwx,g::r-x,m::r--,o::---"},
           Case{"u::rw-,g::---,g:1:rwx,m::r--,o::---", 0640, false,
                "u::rw-,g::---,g:1:rwx,m::r--,o::---"},
       }) {
    INFO(c.list);
    PosixAcl acl = Parse(c.list);
    REQUIRE(acl.PermissionBits() == c.bits);
    REQUIRE(acl.IsEquivalentToMode() == c.equivalent);
    acl.SetPermissionBits(0100640);
    REQUIRE(AclToText(acl.Encode()) == c.after_chmod_640);
    REQUIRE(acl.PermissionBits() == 0640);
  }
}

TEST_CASE("a new entry gets the permissions that both its directory and its maker grant") {
  struct Case {
    const char* list;
    uint32_t mode;
    const char* limited;
  };
  for (const Case& c : {
           Case{"u::rwx,g::r-x,o::r--", 0100666, "u::rw-,g::r--,o::r--"},
           Case{"u::rwx,u:1:rwx,g::r-x,m::rwx,o::---", 0100666,
                "u::rw-,u:1:rwx,g::r-x,m::rw-,o::---"},
           Case{"u::r--,g::rwx,m::r-x,o::rwx", 040771, "u::r--,g::rwx,m::r-x,o::--x"},
           Case{"u::rwx,g::rwx,o::rwx", 0100000, "u::---,g::---,o::---"},
       }) {
    INFO(c.list);
    PosixAcl acl = Parse(c.list);
    acl.LimitTo(c.mode);
    REQUIRE(AclToText(acl.Encode()) == c.limited);
  }
}

TEST_CASE("random lists are accepted and refused as by the kernel") {
  Random random(1);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<Entry> entries = RandomEntries(random);
    for (uint64_t n = random.Below(3); n > 0 && !entries.empty(); --n) Spoil(entries, random);
    const std::string value = Raw(entries);
    INFO(AclToText(value));
    const auto acl = PosixAcl::Decode(value);
    REQUIRE(acl.ok() == IsAcceptable(entries));
    taken += acl.ok() ? 1 : 0;
  }
  REQUIRE(taken > 5'000);
  REQUIRE(taken < 15'000);
}

TEST_CASE("random lists grant the right permissions after a change of mode") {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    auto acl = PosixAcl::Decode(Raw(RandomEntries(random)));
    REQUIRE_OK(acl);
    INFO(AclToText(acl->Encode()));
    const std::vector<uint32_t> before = Effective(*acl);
    const auto mode = static_cast<uint32_t>(random.Below(010000));
    INFO(mode);

    PosixAcl limited = *acl;
    limited.LimitTo(mode);
    const std::vector<uint32_t> after = Effective(limited);
    REQUIRE(limited.PermissionBits() == (acl->PermissionBits() & mode));
    REQUIRE(after.size() == before.size());
    size_t at = 0;
    for (const Entry& entry : acl->entries()) {
      if (entry.tag == Tag::kMask) continue;
      REQUIRE(after[at] == (before[at] & ClassBits(entry.tag, mode)));
      ++at;
    }

    PosixAcl changed = *acl;
    changed.SetPermissionBits(mode);
    REQUIRE(changed.PermissionBits() == (mode & 0777));
    REQUIRE(changed.IsEquivalentToMode() == acl->IsEquivalentToMode());
    for (const Entry& entry : changed.entries()) {
      if (entry.tag != Tag::kUser && entry.tag != Tag::kGroup) continue;
      // Named entries keep their permissions; only the mask removes some.
      REQUIRE(std::find(acl->entries().begin(), acl->entries().end(), entry) !=
              acl->entries().end());
    }
  }
}

}  // namespace
}  // namespace siltfs::testing
