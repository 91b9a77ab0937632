#include "store/object/object_key.h"

#include <algorithm>

namespace siltfs {
namespace {

bool IsKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool IsKeyPart(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && std::ranges::all_of(part, IsKeyCharacter);
}

}  // namespace

bool IsObjectKey(std::string_view key) {
  if (key.size() > kMaxObjectKeyBytes) return false;
  for (;;) {
    const size_t end = key.find('/');
    if (!IsKeyPart(key.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    key.remove_prefix(end + 1);
  }
}

}  // namespace siltfs
