#include "daemon/llama.h"

#include <fcntl.h>

#include <csignal>
#include <cstdlib>

#include <boost/asio/signal_set.hpp>

#include "daemon/background.h"
#include "daemon/door.h"
#include "daemon/http/listener.h"
#include "daemon/report/words.h"
#include "daemon/server/child.h"
#include "daemon/server/default_port.h"
#include "daemon/server/server_command.h"
#include "daemon/session.h"
#include "daemon/startup.h"
#include "daemon/store_size.h"
#include "kvkeep/size_string.h"

namespace kvkeep::daemon {
namespace {

// How long saves that are under way, and then the server, may take at the end.
constexpr auto kGrace = std::chrono::seconds(10);

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

// An error that ends the program before it serves: "kvkeep: what: why (what to do)".
int fail(Log& log, const std::string& text, int status = kFailedItself) {
  log.log(LogLevel::kError, text);
  return status;
}

int status_of_failed_exec(int error) {
  if (error == ENOENT) return kNotFoundProgram;
  return error == EACCES || error == ENOEXEC ? kNotExecutable : kFailedItself;
}

// One run from the first client to the last byte stored.
class Run {
 public:
  Run(const LlamaOptions& options, Log& log) : options_(options), log_(log) {}
  ~Run() {
    if (door_ != nullptr && door_->trace != nullptr) std::fclose(door_->trace);
  }

  // Status of the program, where it cannot serve.
  std::optional<int> prepare();
  int serve();

 private:
  std::optional<int> prepare_child(const ServerCommand& command);
  std::optional<int> prepare_attached();
  std::optional<int> open_door(ServerAddress address, const std::string& host, uint16_t port);
  void note_what_is_known(const ServerCommand& command);
  void greet();
  Async<void> wait_for_child();
  Async<void> wait_for_signal();
  Async<void> stop(int signal);
  Async<void> wait_until_idle(bool for_requests);
  void say_goodbye();

  const LlamaOptions& options_;
  Log& log_;
  // Before the io context: with that end the coroutines, which give back what they hold of the
  // door.
  std::unique_ptr<Door> door_;
  net::io_context io_{1};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Child> child_;
  net::signal_set signals_{io_, SIGINT, SIGTERM, SIGHUP};
  IdentitySettings identity_;
  std::atomic<bool> stopping_{false};
  int status_ = 0;
};

void Run::note_what_is_known(const ServerCommand& command) {
  door_->api_keys = command.api_keys;
  door_->cache_prompt = command.cache_prompt;
  door_->context_shift = command.context_shift;
  identity_.state_fields = command.state_fields;
  identity_.cache_form = command.cache_form;
  if (command.is_router) {
    door_->stop_caching("router",
                        "llama-server serves several models (name one with -m to keep "
                        "its prompts)");
  } else if (command.cache_reuse > 0) {
    door_->stop_caching("cache_reuse",
                        "--cache-reuse makes states that are not those of their "
                        "tokens (leave it out)");
  }
}

std::optional<int> Run::open_door(ServerAddress address, const std::string& host, uint16_t port) {
  Result<std::unique_ptr<Listener>> listener = Listener::open(io_.get_executor(), host, port);
  if (!listener.ok()) {
    return fail(log_, listener.status().message() + " (stop who listens there, or give --port)");
  }
  listener_ = *std::move(listener);
  door_ = std::make_unique<Door>(io_, std::move(address), log_, options_.store);
  door_->public_url = listener_->url();
  if (options_.trace.has_value()) {
    const int fd = ::open(options_.trace->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) door_->trace = ::fdopen(fd, "a");
    if (door_->trace == nullptr)
      return fail(log_, options_.trace->string() + ": cannot be written");
  }
  identity_.model = options_.model_file;
  identity_.digest_book = options_.digest_book;
  if (!options_.label.empty()) identity_.state_fields["label"] = options_.label;
  return std::nullopt;
}

std::optional<int> Run::prepare_child(const ServerCommand& command) {
  if (command.has_tls) {
    return fail(log_,
                "TLS is not served (leave out --ssl-key-file and --ssl-cert-file, and put a "
                "TLS proxy in front of kvkeep)");
  }
  const Result<uint16_t> port = free_port(io_.get_executor());
  if (!port.ok()) return fail(log_, port.status().message());
  ServerAddress address{"127.0.0.1", *port, command.api_prefix,
                        command.api_keys.empty() ? "" : command.api_keys.front()};
  const uint16_t public_port =
      command.port.has_value() ? *command.port : default_port_of(command.arguments.front());
  if (auto failed = open_door(address, command.host.value_or("127.0.0.1"), public_port)) {
    return failed;
  }
  Result<std::unique_ptr<SlotDirectory>> directory = command.slot_path.has_value()
                                                         ? SlotDirectory::use(*command.slot_path)
                                                         : SlotDirectory::create_private();
  if (!directory.ok()) {
    return fail(log_, "slot directory " + directory.status().message() +
                          " (make it writable, or leave out --slot-save-path)");
  }
  door_->directory = *std::move(directory);
  note_what_is_known(command);
  const std::vector<std::string> arguments =
      child_arguments(command, *port, door_->directory->path().string());
  Result<std::unique_ptr<Child>> child =
      Child::spawn(io_.get_executor(), arguments, variables_to_unset());
  if (!child.ok()) {
    return fail(log_, child.status().message() + " (give the path of llama-server after --)",
                status_of_failed_exec(child.status().sys_errno()));
  }
  child_ = *std::move(child);
  return std::nullopt;
}

std::optional<int> Run::prepare_attached() {
  Result<ServerAddress> address = address_from_url(*options_.attach);
  if (!address.ok()) return fail(log_, address.status().message(), 2);
  if (!options_.slot_dir.has_value()) {
    return fail(log_, "--attach needs --slot-dir, the server's --slot-save-path", 2);
  }
  if (!options_.api_keys.empty()) address->api_key = options_.api_keys.front();
  if (auto failed = open_door(*std::move(address), options_.host, options_.port)) return failed;
  Result<std::unique_ptr<SlotDirectory>> directory = SlotDirectory::use(*options_.slot_dir);
  if (!directory.ok()) {
    return fail(log_, "slot directory " + directory.status().message() + " (make it writable)");
  }
  door_->directory = *std::move(directory);
  door_->api_keys = options_.api_keys;
  door_->may_change = true;
  return std::nullopt;
}

std::optional<int> Run::prepare() {
  if (options_.attach.has_value()) return prepare_attached();
  const Result<ServerCommand> command = read_server_command(options_.command, variable);
  if (!command.ok()) return fail(log_, command.status().message(), 2);
  return prepare_child(*command);
}

void Run::greet() {
  const std::string& prefix = door_->api.address().prefix;
  log_.info(options_.store.dir.string() + ": " + format_bytes(bytes_below(options_.store.dir)) +
            " of " + format_bytes(options_.store.max_size) + " used; serving " + door_->public_url +
            prefix + ", status " + door_->public_url + prefix + "/kvkeep/");
}

Async<void> Run::wait_for_child() {
  co_await child_->wait();
  if (!child_->has_ended()) co_return;
  status_ = child_->exit_status();
  if (!stopping_) log_.warn("llama-server has ended: " + child_->end_text());
  stopping_ = true;
  listener_->close();
  co_await wait_until_idle(true);
  io_.stop();
}

Async<void> Run::wait_for_signal() {
  ErrorCode error;
  const int first = co_await signals_.async_wait(into(error));
  if (error) co_return;
  start(io_, log_, "stopping", stop(first));
  co_await signals_.async_wait(into(error));
  if (!error && child_ != nullptr) child_->signal(SIGKILL);  // Somebody is in a hurry.
}

Async<void> Run::wait_until_idle(bool for_requests) {
  net::steady_timer timer(io_);
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  while (std::chrono::steady_clock::now() < deadline) {
    if (door_->saves_running == 0 && (!for_requests || door_->requests_running == 0)) break;
    timer.expires_after(std::chrono::milliseconds(20));
    ErrorCode ignored;
    co_await timer.async_wait(into(ignored));
  }
}

Async<void> Run::stop(int signal) {
  stopping_ = true;
  listener_->close();
  co_await wait_until_idle(false);
  if (child_ == nullptr) {
    status_ = 128 + signal;
    io_.stop();
    co_return;
  }
  child_->signal(signal == SIGINT ? SIGINT : SIGTERM);
  net::steady_timer timer(io_, kGrace);
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
  child_->signal(SIGKILL);
}

void Run::say_goodbye() {
  const Tally& tally = door_->tally;
  std::string line = "saved " + format_count(tally.restored_tokens) + " prompt tokens, about " +
                     format_duration(tally.seconds_saved) + " of prefill";
  if (tally.server_failed > 0) {
    line += "; " + format_count(tally.server_failed) + " requests got no whole answer";
  }
  log_.info(line);
}

int Run::serve() {
  greet();
  Door& door = *door_;
  start(io_, log_, "preparing to keep prompts", bring_up(door, identity_, stopping_));
  start(io_, log_, "waiting for signals", wait_for_signal());
  if (child_ != nullptr) start(io_, log_, "waiting for llama-server", wait_for_child());
  const auto serve_one = [&door](Socket socket) {
    start(door.io, door.log, "a connection", serve_client(door, std::move(socket)));
  };
  start(io_, log_, "taking connections", listener_->accept(serve_one));
  io_.run();
  door.settling.reset();
  door.restoring.join();
  door.keeping.join();
  if (door.store != nullptr) {
    const Status closed = door.store->close();
    if (!closed.ok()) log_.warn("the store was not closed in order: " + closed.message());
  }
  say_goodbye();
  return status_;
}

}  // namespace

int run_llama(const LlamaOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  Log log(options.log);
  Run run(options, log);
  if (const std::optional<int> failed = run.prepare()) return *failed;
  return run.serve();
}

}  // namespace kvkeep::daemon
