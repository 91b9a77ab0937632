#include "tools/exporter/metrics_server.h"

#include <microhttpd.h>

#include <exception>
#include <string_view>
#include <utility>

#include "tools/exporter/open_connections.h"

namespace siltfs {
namespace {

// Clients that do not ask for OpenMetrics, such as a browser, get the older format.
constexpr const char* kOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr const char* kPlainMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr size_t kConnectionMemory = size_t{16} << 10;  // headers and the buffer of the answer
// The library refuses connections beyond this multiple of the limit. Until then a new client takes
// the place of another one, whose thread still has to end.
constexpr unsigned kSpareConnections = 2;
constexpr size_t kThreadStack = size_t{256} << 10;
constexpr std::string_view kMetricsPath = "/metrics";

struct Answer {
  unsigned status = MHD_HTTP_OK;
  std::string text;
  const char* type = kText;
  const char* allow = nullptr;  // the header of this name
};

std::string_view HeaderOf(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool HasBody(MHD_Connection* connection) {
  const std::string_view length = HeaderOf(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return (!length.empty() && length != "0") ||
         !HeaderOf(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
}

MHD_Result Send(MHD_Connection* connection, const Answer& answer) {
  // The library does not change the text, but its parameter is not const.
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.text.size(), const_cast<char*>(answer.text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_Result queued = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
  if (queued == MHD_YES)
    queued = MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (queued == MHD_YES)
    queued = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  if (queued == MHD_YES && answer.allow != nullptr)
    queued = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer.allow);
  if (queued == MHD_YES) queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

class LibraryServer final : public MetricsServer {
 public:
  explicit LibraryServer(Options options)
      : options_(std::move(options)), connections_(options_.most_connections, EndConnection) {}
  ~LibraryServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }
  LibraryServer(const LibraryServer&) = delete;
  LibraryServer& operator=(const LibraryServer&) = delete;

  Status StartOn(const ListeningSocket& socket) {
    SILTFS_ASSIGN_OR_RETURN(Descriptor listening, socket.Duplicate());
    daemon_ = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            MHD_USE_ITC,
        0, nullptr, nullptr, &LibraryServer::OnRequest, this, MHD_OPTION_LISTEN_SOCKET,
        listening.get(), MHD_OPTION_CONNECTION_LIMIT, kSpareConnections * options_.most_connections,
        MHD_OPTION_NOTIFY_CONNECTION, &LibraryServer::OnConnection, this,
        MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(options_.silence.count()),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory, MHD_OPTION_THREAD_STACK_SIZE,
        kThreadStack, MHD_OPTION_END);
    if (daemon_ == nullptr)
      return Status(StatusCode::kIoError, "the HTTP server cannot be started").At(socket.name());
    listening.Release();  // the library closes it
    return Status::Ok();
  }

 private:
  // The library calls this when a connection begins, and before it closes the socket.
  static void OnConnection(void* self, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode code) {
    OpenConnections& connections = static_cast<LibraryServer*>(self)->connections_;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) return connections.Remove(connection);
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) connections.Add(connection, info->connect_fd);
  }

  // The library calls this once when it has the headers of a request, with *state null.
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* method, const char*, const char*, size_t*, void** state) {
    static int seen = 0;
    const Answer refusal = Refuse(connection, method);
    // An answer before the body ends the connection, so no body is received.
    if (refusal.status != MHD_HTTP_OK) return Send(connection, refusal);
    if (*state == nullptr) {
      *state = &seen;
      return MHD_YES;
    }
    return Send(connection, static_cast<LibraryServer*>(self)->Respond(connection, url));
  }

  static Answer Refuse(MHD_Connection* connection, std::string_view method) {
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED,
              .text = "only GET and HEAD are allowed\n",
              .allow = "GET, HEAD"};
    }
    if (HasBody(connection))
      return {.status = MHD_HTTP_BAD_REQUEST, .text = "a request must not have a body\n"};
    return {};
  }

  // The library is written in C, so no exception may reach it. The standard library throws if no
  // memory or no thread is left, for example.
  Result<std::string> ReadMetrics(MetricsFormat format) const {
    try {
      return options_.metrics(format);
    } catch (const std::exception& failure) {
      return Status(StatusCode::kIoError,
                    std::string("the metrics cannot be read: ") + failure.what());
    }
  }

  Answer Respond(MHD_Connection* connection, std::string_view url) const {
    if (url == "/") return {.text = "siltfs: the metrics of all mounted stores are at /metrics\n"};
    if (url != kMetricsPath)
      return {.status = MHD_HTTP_NOT_FOUND, .text = "there is only /metrics\n"};
    const OpenConnections::Answering answering(connections_, connection);
    const bool open = HeaderOf(connection, MHD_HTTP_HEADER_ACCEPT).find("openmetrics-text") !=
                      std::string_view::npos;
    Result<std::string> metrics =
        ReadMetrics(open ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus);
    if (!metrics.ok()) {
      return {.status = MHD_HTTP_SERVICE_UNAVAILABLE, .text = metrics.status().ToString() + "\n"};
    }
    return {.text = *std::move(metrics), .type = open ? kOpenMetrics : kPlainMetrics};
  }

  const Options options_;
  mutable OpenConnections connections_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const ListeningSocket& socket,
                                                            Options options) {
  auto server = std::make_unique<LibraryServer>(std::move(options));
  SILTFS_RETURN_IF_ERROR(server->StartOn(socket));
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace siltfs
