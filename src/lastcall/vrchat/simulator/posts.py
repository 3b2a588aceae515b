"""The group's posts. Their words come back with look-alikes in them, and an edit keeps what it leaves out."""

from __future__ import annotations

from typing import Any

from lastcall.vrchat.simulator import shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal, success
from lastcall.vrchat.simulator.model import Group, Post, User, made_id
from lastcall.vrchat.simulator.reads import LONGEST_PAGE, no_group, not_a_member
from lastcall.vrchat.simulator.site import Site
from lastcall.vrchat.simulator.writes import allowed, record

GRANT = "group-announcement-manage"
_REPLACED = str.maketrans(
    {
        ".": FULL_STOP, "!": "\u01c3", ",": "\u201a", ":": "\u02f8", ";": "\u037e", "/": "\u2044",
        "*": "\u2217", "<": "\u227a", ">": "\u227b", "?": "\uff1f", "(": "\uff08", ")": "\uff09", "&": "\uff06",
    }
)  # fmt: skip


def get_posts(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """Newest first; members see those for the group, others the public ones."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members and group.privacy != "default":
        return not_a_member()
    is_public_only = actor.id not in group.members or request.parameter("publicOnly") == "true"
    posts = [post for post in group.posts.values() if post.visibility == "public" or not is_public_only]
    offset = request.number("offset", 0, 1_000_000)
    size = request.number("n", 60, LONGEST_PAGE)
    page = posts[::-1][offset : offset + size]
    return json_reply({"posts": [shapes.post(group, post) for post in page], "total": len(posts)})


def add_post(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """``POST …/posts``."""
    group = allowed(site, actor, group_id, GRANT)
    if isinstance(group, Reply):
        return group
    body = request.json()
    refused = _refused(group, body)
    if refused is not None:
        return refused
    group.posts_made += 1
    post_id = made_id("not", group.id, group.posts_made)
    post = Post(post_id, actor.id, site.now(), title="", text="", visibility="group")
    _write(post, body)
    group.posts[post.id] = post
    record(site, request, actor, group, "group.post.create", post.id)
    return json_reply(shapes.post(group, post))


def edit_post(site: Site, request: Request, actor: User, group_id: str, post_id: str) -> Reply:
    """``PUT …/posts/{post}``."""
    group = allowed(site, actor, group_id, GRANT)
    if isinstance(group, Reply):
        return group
    post = group.posts.get(post_id)
    if post is None:
        return _gone()
    body = request.json()
    refused = _refused(group, body)
    if refused is not None:
        return refused
    _write(post, body)
    post.editor_id, post.updated_at = actor.id, site.now()
    record(site, request, actor, group, "group.post.update", post.id)
    return json_reply(shapes.post(group, post))


def delete_post(site: Site, request: Request, actor: User, group_id: str, post_id: str) -> Reply:
    """``DELETE …/posts/{post}``."""
    group = allowed(site, actor, group_id, GRANT)
    if isinstance(group, Reply):
        return group
    if group.posts.pop(post_id, None) is None:
        return _gone()
    record(site, request, actor, group, "group.post.delete", post_id)
    return success("Group Post was deleted!")


def _gone() -> Reply:
    """404 in the envelope of a success."""
    return json_reply({"success": {"message": f"Can't find that post{FULL_STOP}", "status_code": 404}}, 404)


def _refused(group: Group, body: dict[str, Any]) -> Reply | None:
    if not all(isinstance(body.get(name), str) and body[name] for name in ("title", "text")):
        return refusal(400, '"title" and "text" must not be empty')
    if body.get("visibility") not in ("group", "public") or not isinstance(
        body.get("sendNotification"), bool
    ):
        return refusal(400, '"visibility" must be one of: group, public')
    if not set(body.get("roleIds") or ()) <= set(group.roles):
        return refusal(404, f"Can't find that role{FULL_STOP}")
    return None


def _write(post: Post, body: dict[str, Any]) -> None:
    post.title, post.text = body["title"].translate(_REPLACED), body["text"].translate(_REPLACED)
    post.visibility, post.is_notified = body["visibility"], body["sendNotification"]
    if "roleIds" in body:
        post.role_ids = list(body["roleIds"])
    if "imageId" in body:
        post.image_id = body["imageId"]
