// Converts access control lists between text, such as "u::rwx,u:1001:r--,g::r-x,m::rwx,o::---", and
// the binary form that extended attributes hold. Does not check whether a list is valid.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "store/base/coding.h"

namespace siltfs::testing {

struct AclTag {
  uint16_t named;    // with an id after the first colon
  uint16_t unnamed;  // without
};

inline AclTag AclTagOf(char letter) {
  switch (letter) {
    case 'u':
      return {0x02, 0x01};
    case 'g':
      return {0x08, 0x04};
    case 'm':
      return {0x10, 0x10};
    case 'o':
      return {0x20, 0x20};
    default:
      throw std::invalid_argument("no such kind of entry");
  }
}

// "" is the empty list.
inline std::string AclFromText(std::string_view text) {
  Encoder out;
  out.U32(2);
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t colon = entry.find(':', 2);
    const std::string id(entry.substr(2, colon - 2));
    uint16_t permissions = 0;
    for (const char c : entry.substr(colon + 1))
      permissions |= static_cast<uint16_t>(c == 'r' ? 4 : c == 'w' ? 2 : c == 'x' ? 1 : 0);
    const AclTag tag = AclTagOf(entry[0]);
    out.U16(id.empty() ? tag.unnamed : tag.named).U16(permissions);
    out.U32(id.empty() ? 0xffffffff : static_cast<uint32_t>(std::stoul(id)));
  }
  return out.Take();
}

inline std::string AclToText(std::string_view value) {
  static constexpr std::string_view kLetters = "rwx";
  Decoder in(AsBytes(value));
  std::string text = in.U32() == 2 ? "" : "of another version ";
  while (in.ok() && in.remaining() > 0) {
    const uint16_t tag = in.U16();
    const uint16_t permissions = in.U16();
    const uint32_t id = in.U32();
    if (!text.empty()) text += ',';
    for (const char letter : std::string_view("ugmo")) {
      if (tag == AclTagOf(letter).named || tag == AclTagOf(letter).unnamed) text += letter;
    }
    text += id == 0xffffffff ? "::" : fmt::format(":{}:", id);
    for (size_t i = 0; i < kLetters.size(); ++i)
      text += (permissions & 4U >> i) != 0 ? kLetters[i] : '-';
  }
  return in.Done() ? text : text + " and half an entry";
}

}  // namespace siltfs::testing
