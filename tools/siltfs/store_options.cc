#include "tools/siltfs/store_options.h"

#include <fmt/format.h>

#include <charconv>

#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

}  // namespace

Result<int> ParseCompression(std::string_view text) {
  if (text == "none") return 0;
  constexpr std::string_view kPrefix = "zstd:";
  int level = 0;
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
    if (error != std::errc() || rest != digits.data() + digits.size()) level = 0;
  }
  if (level < kMinCompressionLevel || level > kMaxCompressionLevel) {
    return Wrong(
        fmt::format("--compression: \"{}\" is neither none nor zstd:N with N from {} to {}", text,
                    kMinCompressionLevel, kMaxCompressionLevel));
  }
  return level;
}

std::string FormatCompression(const Compression& compression) {
  if (compression.codec == BlockCodecId::kNone) return "none";
  return fmt::format("zstd:{}", compression.level);
}

Result<std::string> ParseLabel(const std::string& text) {
  const Status valid = ValidateLabel(text);
  if (!valid.ok()) return Wrong(fmt::format("--label: {}", valid.cause()));
  if (Printable(text) != text)
    return Wrong("--label: the label has characters that terminals do not show, or is not UTF-8");
  return text;
}

}  // namespace siltfs
