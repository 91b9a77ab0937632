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

}  // namespace

std::string EncodeWanted(const Wanted& wanted) {
  Json json = {
      {"snapshot", wanted.snapshot}, {"mountpoint", wanted.mountpoint}, {"xattrs", wanted.xattrs}};
  if (wanted.max_read) json["max_read"] = *wanted.max_read;
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
  Wanted wanted{
      .snapshot = *snapshot, .mountpoint = *mountpoint, .xattrs = *xattrs, .max_read = {}};
  if (object.contains("max_read")) {
    const auto* max_read = ValueOf<uint64_t>(object, "max_read");
    if (max_read == nullptr || *max_read == 0 || *max_read > std::numeric_limits<uint32_t>::max())
      return Malformed();
    wanted.max_read = static_cast<uint32_t>(*max_read);
  }
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
