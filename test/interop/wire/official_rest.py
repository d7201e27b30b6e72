# SPDX-License-Identifier: MIT
"""The calls of rest.c with the official client."""

import datetime
import tempfile
from pathlib import Path

import tinker
from tinker import types


def settle(value):
    while hasattr(value, "result"):
        value = value.result(30)
    return value


def pick(args, **names):
    """Arguments by the names that the official client has for them."""
    return {theirs: args[ours] for ours, theirs in names.items() if ours in args}


FINISHED = ("success", "errored", "interrupted")
PLAIN = {
    "active": types.ActiveSessionStatusQuery,
    "cancelled": types.CancelledSessionStatusQuery,
    "failed": types.FailedSessionStatusQuery,
}


def statuses(states):
    reasons = [s for s in states if s in FINISHED]
    out = [PLAIN[s]() for s in states if s in PLAIN]
    if reasons:
        more = {"reasons": reasons} if len(reasons) < len(FINISHED) else {}
        out.append(types.ClientFinishedSessionStatusQuery(**more))
    return out


def owner(args):
    if "owner_urns" in args:
        return types.UserSearchOwner(owner_urns=args["owner_urns"])
    return types.AccessibleSearchOwner() if args.get("owner") == "accessible" else types.OwnSearchOwner()


class RestCalls:
    """Methods of official.Run."""

    next_one = None  # makes the request for the page after the last one

    @property
    def rest(self):
        return self.service.create_rest_client()

    @property
    def admin(self):
        # One over the service's connections, as those of tnk are.
        return tinker.AdminClient(self.rest.holder)

    def page(self, call, items, **given):
        """Ask for a page; the next one begins behind what has come."""
        got = settle(call(**given))
        offset = given.get("offset", 0) + len(items(got))
        self.next_one = lambda: self.page(call, items, **{**given, "offset": offset})

    def next_page(self, _args):
        self.next_one()

    def list_runs(self, args):
        self.page(self.rest.list_training_runs, lambda page: page.training_runs,
                  **pick(args, limit="limit", offset="offset", scope="access_scope", project_id="project_id"))

    def get_run(self, args):
        settle(self.rest.get_training_run(args["id"], **pick(args, scope="access_scope")))

    def list_run_checkpoints(self, args):
        settle(self.rest.list_checkpoints(args["id"]))

    def list_checkpoints(self, args):
        self.page(self.rest.list_user_checkpoints, lambda page: page.checkpoints,
                  **pick(args, limit="limit", offset="offset"))

    def weights_info(self, args):
        settle(self.rest.get_weights_info_by_tinker_path(self.path_of(args)))

    def external_files(self, args):
        settle(self.rest.get_external_weights_urls(self.path_of(args)))

    def delete(self, args):
        settle(self.rest.delete_checkpoint_from_tinker_path(self.path_of(args)))

    def publish(self, args):
        settle(self.rest.publish_checkpoint_from_tinker_path(self.path_of(args)))

    def unpublish(self, args):
        settle(self.rest.unpublish_checkpoint_from_tinker_path(self.path_of(args)))

    def set_ttl(self, args):
        settle(self.rest.set_checkpoint_ttl_from_tinker_path(self.path_of(args), args.get("ttl_seconds")))

    def copy(self, args):
        more = pick(args, ttl_seconds="ttl_seconds", weights_access_token="weights_access_token")
        if "project_id" in args:
            call = self.rest.copy_weights(self.path_of(args), args["project_id"], **more)
        else:
            call = self.service.copy_weights(self.path_of(args), **more)
        self.path = settle(call)

    def download(self, args):
        from tinker.cli.commands import checkpoint

        with tempfile.TemporaryDirectory() as folder:
            checkpoint._download_checkpoint(self.rest, self.path_of(args), Path(folder), show_progress=False,
                                            format="json")

    def get_session(self, args):
        settle(self.rest.get_session(args["id"], **pick(args, scope="access_scope")))

    def list_sessions(self, args):
        self.page(self.rest.list_sessions, lambda page: page.sessions,
                  **pick(args, limit="limit", offset="offset", scope="access_scope"))

    def search_sessions(self, args):
        more = pick(args, session_id="session_id", display_name="display_name", project_ids="project_ids",
                    user_metadata="user_metadata", limit="limit")
        if "states" in args:
            more["statuses"] = statuses(args["states"])
        request = types.SessionSearchRequest(owner=owner(args), **more)

        def ask(request):
            cursor = settle(self.rest.search_sessions(request)).next_cursor
            self.next_one = lambda: ask(request.model_copy(update={"cursor": cursor}))

        ask(request)

    def move_session(self, args):
        settle(self.rest.assign_session_project(args["id"], args["project_id"]))

    def export_trace(self, args):
        settle(self.rest.export_session_trace(args["id"]))

    def get_sampler(self, args):
        settle(self.rest.get_sampler(args["id"]))

    def whoami(self, _args):
        settle(self.rest.whoami())

    def usage(self, args):
        window = [datetime.datetime.fromtimestamp(args[name], datetime.timezone.utc) for name in ("from", "to")]
        settle(self.admin.get_billing_usage(*window))

    def storage(self, args):
        settle(self.admin.get_current_checkpoint_storage_usage(**pick(args, project_id="project_id")))

    def audit(self, args):
        more = pick(args, event_type="event_type")
        if "day" in args:
            more["day"] = datetime.date.fromisoformat(args["day"])
        settle(self.admin.get_audit_log(**more))
