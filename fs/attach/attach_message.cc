#include "fs/attach/attach_message.h"

#include <fmt/format.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/base/coding.h"

namespace siltfs::attach {
namespace {

using Json = nlohmann::json;

// What the kernel can number (MINORBITS in its sources).
constexpr uint64_t kMaxMajor = (uint64_t{1} << 12) - 1;
constexpr uint64_t kMaxMinor = (uint64_t{1} << 20) - 1;

Status Malformed() {
  return {StatusCode::kInvalidArgument, "the request for a mount is malformed"};
}

// The value of this key, if it has the type of `T`.
template <typename T>
const T* ValueOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->get_ptr<const T*>();
}

// Takes the value of this key if it is there; false if it is no number from `least` to `most`.
bool TakeNumber(const Json& object, const char* key, uint64_t least, uint64_t most,
                std::optional<uint32_t>& number) {
  if (!object.contains(key)) return true;
  const auto* value = ValueOf<uint64_t>(object, key);
  if (value == nullptr || *value < least || *value > most) return false;
  number = static_cast<uint32_t>(*value);
  return true;
}

}  // namespace

std::string EncodeWanted(const Wanted& wanted) {
  Json json = {
      {"snapshot", wanted.snapshot}, {"mountpoint", wanted.mountpoint}, {"xattrs", wanted.xattrs}};
  const auto put = [&json](const char* key, const std::optional<uint32_t>& number) {
    if (number) json[key] = *number;
  };
  put("max_read", wanted.max_read);
  put("uid", wanted.owners.uid);
  put("gid", wanted.owners.gid);
  put("umask", wanted.owners.umask);
  // Never throws, even if the path has invalid UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Wanted> DecodeWanted(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Malformed();
  const auto* snapshot = ValueOf<std::string>(object, "snapshot");
  const auto* mountpoint = ValueOf<std::string>(object, "mountpoint");
  const auto* xattrs = ValueOf<bool>(object, "xattrs");
  if (snapshot == nullptr || !IsName(*snapshot) || mountpoint == nullptr ||
      !mountpoint->starts_with('/') || mountpoint->find('\0') != mountpoint->npos ||
      xattrs == nullptr) {
    return Malformed();
  }
  Wanted wanted{.snapshot = *snapshot,
                .mountpoint = *mountpoint,
                .xattrs = *xattrs,
                .max_read = {},
                .owners = {}};
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const bool numbers = TakeNumber(object, "max_read", 1, kMost, wanted.max_read) &&
                       TakeNumber(object, "uid", 0, kMost - 1, wanted.owners.uid) &&
                       TakeNumber(object, "gid", 0, kMost - 1, wanted.owners.gid) &&
                       TakeNumber(object, "umask", 0, 0777, wanted.owners.umask);
  if (!numbers) return Malformed();
  return wanted;
}

Bytes EncodeDevice(uint64_t device) {
  Encoder encoder;
  encoder.U64(device);
  const ByteView view = encoder.view();
  return Bytes(view.begin(), view.end());
}

Result<uint64_t> DecodeDevice(ByteView message) {
  Decoder decoder(message);
  const uint64_t device = decoder.U64();
  if (!decoder.Done() || device >> 32 > kMaxMajor || (device & 0xffffffff) > kMaxMinor)
    return Malformed();
  return device;
}

std::string DeviceText(uint64_t device) {
  return device == 0 ? "" : fmt::format("{}:{}", device >> 32, device & 0xffffffff);
}

}  // namespace siltfs::attach
