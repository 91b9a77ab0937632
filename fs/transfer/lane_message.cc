#include "fs/transfer/lane_message.h"

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs::transfer {

Bytes EncodeRequest(const Request& request) {
  Encoder out;
  out.U8(static_cast<uint8_t>(request.type)).U8(request.flags).U8(request.slot).U8(0);
  out.U32(request.bytes).U32(request.count).U32(0).U64(request.number).U64(request.second);
  const ByteView bytes = out.view();
  return {bytes.begin(), bytes.end()};
}

Result<Request> DecodeRequest(ByteView packet) {
  Decoder in(packet);
  Request request;
  const uint8_t type = in.U8();
  request.type = static_cast<RequestType>(type);
  request.flags = in.U8();
  request.slot = in.U8();
  in.Skip(1);
  request.bytes = in.U32();
  request.count = in.U32();
  in.Skip(4);
  request.number = in.U64();
  request.second = in.U64();
  const bool known = type >= static_cast<uint8_t>(RequestType::kAttach) &&
                     type <= static_cast<uint8_t>(RequestType::kReadFile);
  // A record has more than one byte, so the bytes limit the number of records.
  const bool fits =
      request.slot < kSlots && request.bytes <= kSlotBytes && request.count <= request.bytes;
  if (!in.Done() || !known || !fits)
    return Status(StatusCode::kInvalidArgument, "the request is not understood");
  return request;
}

Bytes EncodeAnswer(const Answer& answer) {
  Encoder out;
  out.U8(static_cast<uint8_t>(answer.code)).U8(answer.flags).U16(0);
  out.U32(answer.bytes).U32(answer.count).U32(0).U64(answer.number).U64(answer.second);
  out.Raw(std::string_view(answer.cause).substr(0, kMaxCauseBytes));
  const ByteView bytes = out.view();
  return {bytes.begin(), bytes.end()};
}

Result<Answer> DecodeAnswer(ByteView packet) {
  Decoder in(packet);
  Answer answer;
  answer.code = CodeOfNumber(in.U8());
  answer.flags = in.U8();
  in.Skip(2);
  answer.bytes = in.U32();
  answer.count = in.U32();
  in.Skip(4);
  answer.number = in.U64();
  answer.second = in.U64();
  if (!in.ok() || answer.bytes > kSlotBytes || packet.size() > kMaxAnswerBytes)
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood");
  answer.cause = std::string(AsText(in.Raw(in.remaining())));
  return answer;
}

Answer FailureAnswer(const Status& status) {
  return {.code = status.code(), .cause = std::string(status.cause())};
}

Status StatusOfAnswer(const Answer& answer) {
  if (answer.code == StatusCode::kOk) return Status::Ok();
  return {answer.code, answer.cause};
}

StatusCode CodeOfNumber(uint8_t number) {
  return number <= static_cast<uint8_t>(StatusCode::kOtherQuota) ? static_cast<StatusCode>(number)
                                                                 : StatusCode::kIoError;
}

}  // namespace siltfs::transfer
