// Bytes as hexadecimal text, for messages in JSON, which cannot hold all bytes.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace siltfs {

std::string ToHex(std::string_view bytes);
// nullopt unless the text consists of pairs of lower-case digits.
std::optional<std::string> FromHex(std::string_view text);

}  // namespace siltfs
